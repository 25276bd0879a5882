"""One file an experiment; each also runs tiny in the tests, so none rots."""
