"""The Master of a KubeDL PyTorchJob. It runs as the image kubedl/pytorch-dist-example.

In an elastic job the workers form a group in a rendezvous, and the Master takes no part in the training. It exists
because the job's API requires it, and waits for SIGTERM. In a rigid job it trains with the workers, as rank 0.
What always holds: it ends at SIGTERM at once.
"""

import os
import signal
import sys


def main():
    if not any(argument.startswith("--rdzv") for argument in sys.argv[1:]):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "mnist-pytorch", "mnist.py")
        os.execv(sys.executable, [sys.executable, script, *sys.argv[1:]])
    # Blocked until sigwait, so that no signal is lost before the wait begins.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
    print("The workers of this job train without the Master; waiting for the end of the job.", flush=True)
    signal.sigwait([signal.SIGTERM, signal.SIGINT])
    return 0


if __name__ == "__main__":
    sys.exit(main())
