"""Products of matrices in dense arrays, kept under changes of low rank."""
