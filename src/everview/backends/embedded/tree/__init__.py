"""View trees in machine code: the maps that hold views, the machine that runs triggers, and the operators around them."""
