"""What a window keeps: policies that let events go, by number, time, key, order or predicate."""
