"""What became of objects, every version of it: for states that a fast cluster passes through between two looks.

Used by the walkthroughs' `demo` scripts. A Watch is a `kubectl get -w` from before a step until after it; its events()
are in the order in which the server had them. Ends with its `with`.
"""

import json
import subprocess
import tempfile


class Watch:
    def __init__(self, environment, *what):
        self.out = tempfile.NamedTemporaryFile("a")
        self.process = subprocess.Popen(["kubectl", "get", *what, "-w", "--output-watch-events", "-o", "json"],
                                        env=environment, stdout=self.out)

    def events(self):
        """(ADDED, MODIFIED or DELETED; the object as it was then) of all that has come so far."""
        with open(self.out.name) as out:
            text = out.read().lstrip()
        found, decoder = [], json.JSONDecoder()
        while text:
            try:
                event, end = decoder.raw_decode(text)
            except json.JSONDecodeError:  # The last one is still being written.
                break
            found.append((event["type"], event["object"]))
            text = text[end:].lstrip()
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.out.close()
