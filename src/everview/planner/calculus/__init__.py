"""The calculus of multilevel-ivm: queries as polynomials of relations, which are closed under taking deltas."""
