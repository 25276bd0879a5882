"""The command line of each experiment, a file a family; ``bench.__main__`` collects them."""
