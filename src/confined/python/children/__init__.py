"""The children of the zygote that run no notebook code: the syntax judge, the installer of
packages, other programs. See also the packages `conversion` and `engines`."""
