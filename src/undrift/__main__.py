"""Run the command line with ``python -m undrift``."""

from .app import main

if __name__ == "__main__":
    main()
