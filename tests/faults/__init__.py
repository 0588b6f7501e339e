"""Accounts of real adapters against the platforms' fakes, with faults between them, in virtual time."""
