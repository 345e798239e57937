"""Patterns and streams of events, for the engine and the twin to be tried on."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

STREAMS = """
create schema E(id string, k string, n int);
create schema S(id string, n int);
"""

SECONDS = ("1 sec", "1500 msec", "2 sec", "3 sec")


class _Writer:
    """Writes one pattern; every filter has a tag of its own."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.tags = 0

    def pick(self, options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def sequence(self, depth: int, seen: list[str]) -> tuple[str, list[str]]:
        """Steps one after the other, and the tags of single events that they leave behind."""
        parts, known = [], list(seen)
        for _ in range(self.pick([1, 1, 1, 2, 3]) if depth else 1):
            text, tags = self.step(depth, known)
            parts.append(text)
            known += tags
        arrow = self.pick(["->", "->", "->", "-[1]>", "-[2]>"])
        return f" {arrow} ".join(parts), known[len(seen) :]

    def step(self, depth: int, seen: list[str]) -> tuple[str, list[str]]:
        """One step, in parentheses where it is not an atom."""
        kinds = ["filter", "filter", "timer"]
        if depth:
            kinds += [
                "every",
                "every",
                "and",
                "or",
                "not",
                "absence",
                "repeat",
                "until",
                "within",
                "max",
                "while",
            ]
            kinds += ["distinct", "sequence"]
        return getattr(self, f"_{self.pick(kinds)}")(depth - 1, seen)

    def _filter(self, depth: int, seen: list[str]) -> tuple[str, list[str]]:
        self.tags += 1
        tag, stream = f"t{self.tags}", self.pick("EES")
        tests = ["", "", "", "(n = 1)", "(n > 1)"]
        for other in seen[-2:]:
            tests += [
                f"(id = {other}.id)",
                f"(n = {other}.n)",
                f"(n > {other}.n)",
                f"(n <= {other}.n, id != {other}.id)",
                f"(n between 2 and {other}.n)",
                f"(n in [{other}.n:3), id is not {other}.id)",
                f"(n is {other}.n)",
                f"(not n < {other}.n)",
            ]
        consume = self.pick(["", "", "", "", " @consume"])
        return f"{tag}={stream}{self.pick(tests)}{consume}", [tag]

    def _timer(self, depth: int, seen: list[str]) -> tuple[str, list[str]]:
        return f"timer:interval({self.pick(SECONDS)})", []

    def _every(self, depth: int, seen: list[str]) -> tuple[str, list[str]]:
        text, tags = self.sequence(depth, seen)
        return f"(every ({text}))", tags

    def _distinct(self, depth: int, seen: list[str]) -> tuple[str, list[str]]:
        text, tags = self._filter(depth, seen)
        expiry = self.pick(["", ", 2 sec"])
        return f"(every-distinct({tags[0]}.n{expiry}) ({text}))", tags

    def _several(self, word: str, depth: int, seen: list[str]) -> tuple[str, list[str]]:
        parts = [self.sequence(depth, seen) for _ in range(2)]
        return f"({f' {word} '.join(f'({text})' for text, _ in parts)})", [
            tag for _, tags in parts for tag in tags
        ]

    def _and(self, depth: int, seen: list[str]) -> tuple[str, list[str]]:
        return self._several("and", depth, seen)

    def _or(self, depth: int, seen: list[str]) -> tuple[str, list[str]]:
        return self._several("or", depth, seen)

    def _not(self, depth: int, seen: list[str]) -> tuple[str, list[str]]:
        text, tags = self.step(depth, seen)
        return f"(not ({text}))", tags

    def _absence(self, depth: int, seen: list[str]) -> tuple[str, list[str]]:
        text, tags = self._filter(depth, seen)
        return f"(timer:interval({self.pick(SECONDS)}) and not {text})", tags

    def _sequence(self, depth: int, seen: list[str]) -> tuple[str, list[str]]:
        text, tags = self.sequence(depth, seen)
        return f"({text})", tags

    def _repeat(self, depth: int, seen: list[str]) -> tuple[str, list[str]]:
        text, _ = self.sequence(depth, seen)
        return f"([{self.pick([1, 2, 3])}] ({text}))", []

    def _until(self, depth: int, seen: list[str]) -> tuple[str, list[str]]:
        text, _ = self.sequence(depth, seen)
        stop, tags = self.step(depth, seen)
        return f"({self.pick(['', '[2] ', '[1:] ', '[:2] ', '[1:2] '])}({text}) until ({stop}))", tags

    def _within(self, depth: int, seen: list[str]) -> tuple[str, list[str]]:
        text, tags = self.sequence(depth, seen)
        return f"(({text}) where timer:within({self.pick(SECONDS)}))", tags

    def _max(self, depth: int, seen: list[str]) -> tuple[str, list[str]]:
        text, tags = self.sequence(depth, seen)
        return f"(({text}) where timer:withinmax({self.pick(SECONDS)}, {self.pick([0, 1, 2])}))", tags

    def _while(self, depth: int, seen: list[str]) -> tuple[str, list[str]]:
        text, tags = self._filter(depth, seen)
        return f"({text} while ({tags[0]}.n < 3))", tags


@st.composite
def patterns(draw: st.DrawFn) -> str:
    """The statement of a pattern, with at least one tag."""
    writer = _Writer(draw)
    first, tags = writer._filter(0, [])
    head = writer.pick([f"every {first}", f"every {first}", first, ""])
    text, _ = writer.sequence(writer.pick([1, 2, 3]), tags if head else [])
    note = writer.pick(["", "", "", "@SuppressOverlappingMatches ", "@DiscardPartialsOnMatch "])
    whole = f"{head} -> {text}" if head else text
    return f"select * from pattern {note}[{whole if writer.tags else first}]"


@st.composite
def arrivals(draw: st.DrawFn) -> list[tuple[int, str, dict[str, Any]]]:
    """(instant, stream, event); an empty stream lets time go on."""
    now, steps = 0, []
    for number in range(draw(st.integers(4, 12))):
        now += draw(st.sampled_from([0, 0, 500, 1000, 1500, 4000]))
        stream = draw(st.sampled_from(["E", "E", "S", ""]))
        row: dict[str, Any] = {"id": f"e{number}", "n": draw(st.sampled_from([1, 2, 3, None]))}
        if stream == "E":
            row["k"] = draw(st.sampled_from("AB"))
        steps.append((now, stream, row if stream else {}))
    return [*steps, (now + 5000, "", {})]
