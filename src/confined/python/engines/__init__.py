"""Embedded databases, each in a child of the zygote."""
