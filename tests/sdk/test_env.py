"""Rank and world size from the environment."""

import unittest
from unittest import mock

import support  # noqa: F401  (puts the SDK on the path)
from swell.env import Env
from swell.train import Job


class EnvTest(unittest.TestCase):
    def test_alone_without_variables(self):
        env = Env.read({})
        self.assertEqual((env.rank, env.world, env.distributed, env.leader), (0, 1, False, True))

    def test_as_the_controller_sets_them(self):
        env = Env.read(
            {"RANK": "2", "WORLD_SIZE": "3", "MASTER_ADDR": "job-master-0", "MASTER_PORT": "23456"}
        )
        self.assertEqual((env.rank, env.world), (2, 3))
        self.assertEqual((env.master_addr, env.master_port), ("job-master-0", 23456))
        self.assertFalse(env.leader)

    def test_a_job_has_its_place(self):
        job = Job(env=Env(rank=2, world=3))
        self.assertEqual((job.rank, job.world), (2, 3))

    def test_a_script_without_the_launcher_that_was_asked_for_says_so(self):
        two, under = {"PET_NPROC_PER_NODE": "2"}, {"TORCHELASTIC_RUN_ID": "x"}
        for environ, told in ((two, 1), ({**two, **under}, 0), ({**two, "RANK": "1", "WORLD_SIZE": "2"}, 0),
                              ({"PET_NPROC_PER_NODE": "1"}, 0), ({"PET_NPROC_PER_NODE": "auto"}, 0), ({}, 0)):
            with self.subTest(environ), mock.patch("swell.report.complain") as complain:
                Env.read(environ).complain_of_no_launcher()
                self.assertEqual(complain.call_count, told)

    def test_nonsense_is_refused(self):
        for environ in ({"RANK": "3", "WORLD_SIZE": "3"}, {"WORLD_SIZE": "two"}, {"RANK": "-1"}):
            with self.subTest(environ):
                self.assertRaises(ValueError, Env.read, environ)


if __name__ == "__main__":
    unittest.main()
