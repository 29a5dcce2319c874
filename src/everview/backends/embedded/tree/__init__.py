"""View trees in machine code: the maps that hold views, the machine that runs triggers over them, and the operator around both."""
