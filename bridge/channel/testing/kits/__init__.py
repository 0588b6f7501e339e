"""The kits of our own channels, for the contract suite."""
