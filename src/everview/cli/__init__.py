"""The everview command: one module a subcommand, over the public interface only."""
