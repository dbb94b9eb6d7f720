"""Conversion of notebook files, in a child of the zygote."""
