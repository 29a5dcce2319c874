"""Models over joins, kept fresh under updates: what they read is maintained, so that no refit touches a row."""

from everview.learn.chow_liu_tree import ChowLiuTree
from everview.learn.estimator import CollinearityWarning, ConvergenceWarning, LearningWarning
from everview.learn.grouped_regression import GroupedRegression
from everview.learn.linear_regression import LinearRegression
from everview.learn.matrix_chain import MatrixChain
from everview.learn.moments import CategoryCounts, Moments, PairCounts
from everview.learn.mutual_information import MutualInformation
from everview.learn.ridge import Ridge

__all__ = [
    "CategoryCounts",
    "ChowLiuTree",
    "CollinearityWarning",
    "ConvergenceWarning",
    "GroupedRegression",
    "LearningWarning",
    "LinearRegression",
    "MatrixChain",
    "Moments",
    "MutualInformation",
    "PairCounts",
    "Ridge",
]
