"""Follow a view: every commit's effect on it, once and in order.

Run: python examples/subscribe.py
"""

import everview as ev


def main() -> None:
    """Counts words that come and go, and prints what each commit did to the counts."""
    with ev.connect(backend="reference") as db:
        words = db.create_table("words", "word STRING")
        counts = db.create_view("counts", "SELECT word, COUNT(*) AS n FROM words GROUP BY word")
        counts.subscribe(print)
        words.insert([("bag",), ("ring",), ("bag",)])
        words.delete([("bag",)])
        print(sorted(counts.rows()))


if __name__ == "__main__":
    main()
