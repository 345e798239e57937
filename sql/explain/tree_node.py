"""A tree of operators, and its text."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class TreeNode:
    """One operator: its text, a remark, and its inputs."""

    label: str
    remark: str = ""
    inputs: list[TreeNode] = field(default_factory=list)


def draw(node: TreeNode) -> list[str]:
    """The lines of a tree, remarks below each other."""
    rows: list[tuple[str, str]] = []

    def add(item: TreeNode, lead: str, joint: str) -> None:
        rows.append((f"{joint}{item.label}", item.remark))
        for index, feeding in enumerate(item.inputs):
            is_last = index == len(item.inputs) - 1
            add(feeding, lead + ("   " if is_last else "│  "), f"{lead}{'└─ ' if is_last else '├─ '}")

    add(node, "", "")
    width = min(72, max(len(label) for label, _ in rows))
    return [f"{label:<{width}}  · {remark}" if remark else label for label, remark in rows]
