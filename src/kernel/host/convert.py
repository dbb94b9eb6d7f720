def run(order): raise NotImplementedError
