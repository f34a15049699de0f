"""The time of a rank's own work: a slow rank shows in it, although all ranks have one speed."""

import os
import time
import types
import unittest

import support
import torch
from members import Members
from swell import own_time, progress

_SLOW_SECONDS = 0.2  # far above what a step takes on a busy machine


def train(epochs, seed, step_seconds, in_turn, wait_at_end, gather, lose_at, kill_at, noticed):
    """Three ranks, of which the last sleeps in each step. `in_turn`: it has longer data, too."""
    import swell

    job = swell.Job(backend="gloo")
    torch.set_num_threads(1)
    width = 300 if in_turn and job.env.rank == 2 else 100
    model = job.parallel(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def collate(records):
        return torch.ones(len(records), width)

    data = torch.utils.data.TensorDataset(torch.zeros(120))
    for batch in job.batches(data, 6, epochs, {"model": model, "optimizer": optimizer}, collate_fn=collate):
        optimizer.zero_grad()
        model(batch.mean(1, keepdim=True)).square().mean().backward()
        if job.env.rank == 2:
            time.sleep(_SLOW_SECONDS)
        optimizer.step()
    print("ends", flush=True)
    record = job.own_time
    job.progress.note_own(record.steps, record.own_total, record.whole_total, record.elements_total)


class OwnTimeTest(support.FolderTest):
    def ranks(self, **options):
        job = Members(self, 3, 3, epochs=1, training=train, **options)
        job.start(0, 1, 2)
        self.assertEqual(job.finish(0, 1, 2), [0] * 3, job.all_logs())
        folder = os.path.dirname(job.checkpoints)
        return [progress.read(os.path.join(folder, f"progress-{rank}")) for rank in range(3)]

    def test_the_rank_that_the_others_wait_for_has_the_longest_time(self):
        ranks = self.ranks()
        own = [rank["own_ns"] / rank["steps_measured"] / 1e9 for rank in ranks]
        for rank in ranks:
            # The first step has no beginning.
            self.assertEqual(rank["steps_measured"], 19)
            self.assertGreater(rank["whole_ns"] / rank["steps_measured"], _SLOW_SECONDS * 1e9)
            self.assertEqual(rank["elements"], 19 * 200)
        self.assertGreater(own[2], _SLOW_SECONDS)
        for other in own[:2]:
            self.assertLess(other, own[2] / 2)

    def test_longer_data_is_told_beside_it(self):
        self.assertEqual([rank["elements"] // 19 for rank in self.ranks(in_turn=True)], [200, 200, 600])


class Clock:
    """Milliseconds."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now * 1_000_000


class MeasuringTest(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        self.record = progress.ProgressRecord(0, 2, {})
        self.own = own_time.OwnTime(self.record, self.clock)
        self.own.leave()

    def step(self, own, meeting=0):
        self.clock.now += own
        self.own.arrive()
        self.clock.now += meeting
        self.own.leave()

    def totals(self):
        return (self.own.steps, self.own.own_total / 1e6, self.own.whole_total / 1e6)

    def test_the_meeting_is_waiting(self):
        self.step(10, meeting=30)
        self.step(20, meeting=20)
        self.assertEqual(self.totals(), (2, 30, 80))

    def test_sums_of_gradients_are_waiting_once_the_last_is_asked_for(self):
        on_cpu = torch.zeros(1)
        self.clock.now += 10
        self.own.ask(on_cpu)
        for seconds in (5, 15):
            self.clock.now += seconds
            self.own.answered(on_cpu)
        self.step(3)
        self.assertEqual(self.totals(), (1, 13, 33))

    def test_an_answer_from_before_the_last_gradients_is_no_wait(self):
        self.clock.now += 5
        self.own.answered(torch.zeros(1))
        self.clock.now += 5
        self.own.ask(torch.zeros(1))
        self.step(10)
        self.assertEqual(self.totals(), (1, 20, 20))

    def test_a_step_with_an_evaluation_or_a_change_of_the_group_does_not_count(self):
        self.step(10)
        self.record.enter("eval")
        self.record.enter("step")
        self.step(1000)
        self.step(10)
        self.own.forget()
        self.step(5000)
        self.step(10)
        self.assertEqual(self.totals(), (3, 30, 30))

    def test_the_record_has_the_totals(self):
        noted = []
        self.record.note_own = lambda *numbers: noted.append(numbers)
        for _ in range(30):
            self.own.elements = 7
            self.step(100)
        # Once a second.
        self.assertEqual(noted, [(steps, steps * 10**8, steps * 10**8, 7 * steps) for steps in (10, 20, 30)])

    def test_waits_on_a_gpu_are_measured_there(self):
        class Event:
            def __init__(self, at, over=True):
                self.at, self.over = at, over

            def query(self):
                return self.over

            def elapsed_time(self, other):
                return other.at - self.at

        on_gpu = types.SimpleNamespace(is_cuda=True)
        events = iter([Event(10), Event(14), Event(30), Event(110), Event(150, over=False)])
        original, own_time._gpu_event = own_time._gpu_event, lambda: next(events)
        self.addCleanup(setattr, own_time, "_gpu_event", original)
        self.own.ask(on_gpu)
        self.own.answered(on_gpu)
        self.own.answered(on_gpu)
        self.step(2, meeting=48)  # the processor is far ahead of the GPU
        self.assertEqual(self.totals(), (1, 30, 50))
        self.own.ask(on_gpu)
        self.own.answered(on_gpu)
        self.step(50)
        self.assertEqual(self.totals(), (2, 80, 100))
        self.own._events[0][1].over = True
        self.step(50)
        self.assertEqual(self.totals(), (3, 90, 150))

    def test_elements_are_those_of_all_tensors(self):
        batch = {"a": torch.zeros(2, 3), "b": [torch.zeros(4), "text", (torch.zeros(5), 1)]}
        self.assertEqual(own_time.elements_of(batch), 15)
        self.assertEqual(own_time.elements_of("text"), 0)


class CollectivesTest(unittest.TestCase):
    def test_collectives_of_the_script_are_waiting_and_those_within_them_count_once(self):
        import torch.distributed as dist

        clock = Clock()
        own = own_time.OwnTime(progress.ProgressRecord(0, 2, {}), clock)

        def all_gather(*arguments, **named):
            clock.now += 20
            return "gathered"

        def barrier(*arguments, **named):
            clock.now += 10
            return dist.all_gather()

        for module in (dist, dist.distributed_c10d):
            for name in own_time._COLLECTIVES:
                if hasattr(module, name):
                    self.addCleanup(setattr, module, name, getattr(module, name))
        dist.all_gather, dist.barrier = all_gather, barrier
        for _ in range(2):  # frameworks may adopt a group twice
            own_time.watch_collectives(own)
        own.leave()
        self.assertEqual(dist.barrier(), "gathered")
        dist.all_gather(async_op=True)
        clock.now += 5
        own.arrive()
        own.leave()
        self.assertEqual((own.own_total / 1e6, own.whole_total / 1e6), (25, 55))


if __name__ == "__main__":
    unittest.main()
