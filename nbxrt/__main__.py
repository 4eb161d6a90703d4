"""`python -m nbxrt`: the command line."""

from nbxrt.cli import main

if __name__ == "__main__":
    main()
