# Configuration of Jupyter Server without two handicaps: its WebSockets send each message at once instead of waiting
# until the client has acknowledged the one before (up to 40 ms), and output is not limited to 1 MB per second.
from jupyter_server.services.kernels.websocket import KernelWebsocketHandler

opened = KernelWebsocketHandler.open


async def open_without_delay(self, kernel_id):
    self.set_nodelay(True)
    await opened(self, kernel_id)


KernelWebsocketHandler.open = open_without_delay
c.ZMQChannelsWebsocketConnection.limit_rate = False  # noqa: F821
