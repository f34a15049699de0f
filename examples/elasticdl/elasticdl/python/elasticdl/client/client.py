"""ElasticDL's client under the path of its first documents. It runs `elasticdl train`.

`python elasticdl/python/elasticdl/client/client.py --job_name=… --model_file=… …` takes the same flags.
"""

import os
import shutil
import sys


def main():
    program = shutil.which("elasticdl")
    if program is None:
        swell = shutil.which("swell")
        if swell is None:
            print("elasticdl is not on PATH; with Swell built: export PATH=$PWD/build/bin:$PATH", file=sys.stderr)
            return 127
        os.execv(swell, ["swell", "elasticdl", "train", *sys.argv[1:]])
    os.execv(program, ["elasticdl", "train", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
