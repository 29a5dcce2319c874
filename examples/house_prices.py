"""A model of house prices that stays fresh while houses and shops come and go: no refit reads a row.

Run: python examples/house_prices.py [--plot prices.png]
"""

import argparse

import numpy as np
import pyarrow as pa

import everview as ev

JOIN = "SELECT * FROM house JOIN area USING (postcode)"
SLOPE, LATER = 3_000.0, 4_500.0
"""What a square metre costs, and what it costs from half of the stream on."""


def areas(count: int, random: np.random.Generator) -> pa.Table:
    """One row for each postcode."""
    kinds = np.array(["centre", "suburb", "village"])
    return pa.table(
        {
            "postcode": np.arange(count),
            "kind": kinds[random.integers(0, 3, count)],
            "schools": random.integers(0, 6, count).astype(float),
        }
    )


def houses(count: int, area: pa.Table, price_of_metre: float, random: np.random.Generator) -> pa.Table:
    """Houses in random postcodes, with prices that depend on their size and on where they are."""
    at = random.integers(0, len(area), count)
    size = random.uniform(30, 200, count)
    central = area["kind"].to_numpy(zero_copy_only=False)[at] == "centre"
    price = price_of_metre * size + 80_000 * central + 5_000 * area["schools"].to_numpy()[at]
    return pa.table({"postcode": at, "size": size, "price": price + random.normal(0, 20_000, count)})


def main(batches: int = 40, rows: int = 500, plot: str | None = None) -> list[float]:
    """Streams houses in, and lets the oldest ones go; returns what the model thought of a square metre after each batch."""
    random = np.random.default_rng(7)
    with ev.connect() as db:
        db.create_table("area", "postcode BIGINT, kind STRING, schools DOUBLE", primary_key="postcode")
        db.create_table("house", "postcode BIGINT, size DOUBLE, price DOUBLE")
        cov = db.create_covariance("cov", JOIN, continuous=["price", "size", "schools"], categorical=["kind"])
        area = areas(200, random)
        first = houses(rows, area, SLOPE, random)
        db.apply({"area": area, "house": first})
        model = ev.learn.LinearRegression(cov, label="price", l2=1e-3)
        model.follow(cov)  # from now on every commit refreshes it
        seen, scores, waiting = [], [], [first]
        for batch in range(batches):
            waiting.append(houses(rows, area, SLOPE if batch < batches // 2 else LATER, random))
            with db.transaction() as tx:
                tx.insert("house", waiting[-1])
                if len(waiting) > 5:
                    tx.delete("house", waiting.pop(0))
            seen.append(model.coefficients_["size"])
            scores.append(model.score())
        print(model)
        print(f"R² = {model.score():.4f} over {model.n_samples_:,.0f} joined rows")
    if plot is not None:
        draw(seen, scores, plot)
    return seen


def draw(seen: list[float], scores: list[float], path: str) -> None:
    """The model over time: what a square metre costs, and how well prices are explained."""
    import matplotlib as mpl  # noqa: PLC0415 -- only a picture needs it

    mpl.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    figure, (above, below) = pyplot.subplots(2, 1, sharex=True, layout="constrained")
    above.plot(seen, label="learned")
    half = len(seen) // 2
    above.step(range(len(seen)), [SLOPE] * half + [LATER] * (len(seen) - half), where="post", label="true")
    above.set_ylabel("price of a square metre")
    above.legend()
    below.plot(scores)
    below.set(ylabel="R²", xlabel="batch")
    figure.savefig(path)
    pyplot.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", help="a file for the picture")
    main(plot=parser.parse_args().plot)
