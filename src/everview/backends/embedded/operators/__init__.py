"""Push operators: each keeps what it needs to turn a change of its inputs into the change of its output."""
