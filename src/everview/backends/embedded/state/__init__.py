"""State of the embedded engine: hash maps, slices, ordered indexes, exact sums; flat arrays and the kernels over them."""
