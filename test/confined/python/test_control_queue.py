"""Commands reach marimo's loop in their order, and leave other tasks of the loop their turn."""

import asyncio
import threading
import unittest

import support  # noqa: F401  isort: skip  puts the host on sys.path

from kernel.control_queue import ControlQueue


class Queue(unittest.TestCase):
    def test_every_command_of_another_thread_arrives_in_order(self):
        queue, count = ControlQueue(), 20_000

        async def take_all():
            writer = threading.Thread(target=lambda: [queue.put(number) for number in range(count)])
            writer.start()
            taken = [await queue.take() for _ in range(count)]
            writer.join()
            return taken

        self.assertEqual(asyncio.run(asyncio.wait_for(take_all(), 60)), list(range(count)))

    def test_other_tasks_run_between_commands_that_have_all_come(self):
        queue, turns = ControlQueue(), []
        for number in range(3):
            queue.put(number)

        async def take_all():
            async def count():
                while True:
                    turns.append(None)
                    await asyncio.sleep(0)

            counting = asyncio.ensure_future(count())
            for number in range(3):
                self.assertEqual(await queue.take(), number)
                self.assertGreater(len(turns), number)
            counting.cancel()

        asyncio.run(take_all())

    def test_a_command_after_the_end_of_the_loop_is_no_error(self):
        queue = ControlQueue()
        queue.put(1)
        asyncio.run(queue.take())
        queue.put(2)


if __name__ == "__main__":
    unittest.main()
