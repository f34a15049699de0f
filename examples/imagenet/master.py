"""The Master of a KubeDL PyTorchJob: what stands in for the image kubedl/pytorch-dist-example.

In an elastic job workers meet in a rendezvous and elect who leads; the Master has no part in the training. It is there
because the job's API has it, and waits until it is told to stop. In a rigid job it trains with the workers, as rank 0.
What always holds: it ends at SIGTERM at once.
"""

import os
import signal
import sys


def main():
    if not any(argument.startswith("--rdzv") for argument in sys.argv[1:]):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "mnist-pytorch", "mnist.py")
        os.execv(sys.executable, [sys.executable, script, *sys.argv[1:]])
    # Blocked and waited for: no moment between a check and the wait in which the signal is lost.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
    print("The workers of this job lead themselves; waiting until it is over.", flush=True)
    signal.sigwait([signal.SIGTERM, signal.SIGINT])
    return 0


if __name__ == "__main__":
    sys.exit(main())
