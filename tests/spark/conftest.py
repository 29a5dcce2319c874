"""What the tests of the Spark backend share: the corpus's plans, and streams of changes to replay."""

from tests.oracle.conftest import corpus_gateway, corpus_plan

__all__ = ["corpus_gateway", "corpus_plan"]
