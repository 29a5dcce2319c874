"""``python -m everview`` is the command line ``everview``."""

from everview.cli.main import main

if __name__ == "__main__":
    main()
