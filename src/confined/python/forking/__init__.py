"""How the zygote forks its children: the orders that it reads, the processes that wait for one, the libraries that are loaded
before a fork, and the memory of kernels."""
