"""Images end to end: imported, pulled from docker-registry and from one that misbehaves, run in pods.

The program is $SWELL_BIN/swell. Needs root, busybox-static; what needs docker-registry is skipped without it.
"""

import base64
import json
import os
import shutil
import ssl
import unittest

from image_cluster import SWELL, ClusterTest, run, until  # it makes the next ones importable

import layout
from docker_registry import DockerRegistry
from hostile import HostileRegistry


def certificate(folder):
    """A pair for localhost that is its own authority."""
    pair = folder / "tls.crt", folder / "tls.key"
    made = run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
               "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-out", pair[0],
               "-keyout", pair[1])
    assert made.returncode == 0, made.stderr
    return pair


@unittest.skipUnless(os.geteuid() == 0 and os.path.exists(layout.BUSYBOX), "needs root and busybox-static")
class ImagesTest(ClusterTest):
    pods = 0

    # ---- what the tests say ----

    def images(self, *words):
        return run(SWELL, "images", *words, "--data-dir", self.data)

    def done(self, process):
        self.assertEqual(process.returncode, 0, process.stderr)
        return process.stdout

    def start(self, image, policy="IfNotPresent", spec=None, **container):
        """The name of a new pod."""
        type(self).pods += 1
        name = f"pod-{self.pods}"
        self.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                    "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, **(spec or {}),
                             "containers": [{"name": "main", "image": image, "imagePullPolicy": policy, **container}]}})
        return name

    def pod(self, name):
        return json.loads(self.done(self.kubectl("get", "pod", name, "-o", "json")))

    def state(self, name):
        statuses = self.pod(name)["status"].get("containerStatuses", [{}])
        return statuses[0].get("state", {})

    def output(self, name):
        """The log of a pod that runs to its end."""
        self.assertTrue(until(lambda: "terminated" in self.state(name), seconds=60), self.state(name))
        return self.kubectl("logs", name).stdout

    def failure(self, name, *reasons):
        """The message of a container that cannot start."""
        def waiting():
            state = self.state(name).get("waiting", {})
            return state if state.get("reason") in reasons and state.get("message") else None
        found = until(waiting, seconds=60)
        self.assertTrue(found, self.state(name))
        return found["message"]

    def events(self, name):
        got = json.loads(self.done(self.kubectl("get", "events", "-o", "json", "--field-selector",
                                                f"involvedObject.name={name}")))
        return [(event["reason"], event["message"]) for event in got["items"]]

    def secret(self, name, address, user):
        auth = base64.b64encode(user.encode()).decode()
        config = json.dumps({"auths": {address: {"auth": auth}}}).encode()
        self.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
                    "type": "kubernetes.io/dockerconfigjson",
                    "data": {".dockerconfigjson": base64.b64encode(config).decode()}})

    def hostile(self, *layers, **config):
        registry = HostileRegistry(layout.busybox(*layers, **config))
        self.addCleanup(registry.close)
        return registry

    def docker(self, name, **more):
        if not shutil.which("docker-registry"):
            self.skipTest("needs docker-registry")
        registry = DockerRegistry(self.scratch / name, **more)
        self.addCleanup(registry.close)
        return registry

    # ---- files ----

    def test_an_imported_image_runs_as_its_config_says(self):
        upper = layout.tar({"etc/.wh.group": b"", "app/hello": b"hello\n"})
        image = layout.busybox(upper, Entrypoint=["/bin/sh", "-c"], Cmd=["id -u; pwd; cat /app/hello; echo $A"],
                               Env=["PATH=/bin", "A=image"], User="app", WorkingDir="/work/here")
        image.write(self.scratch / "app")
        self.done(self.images("import", f"oci:{self.scratch / 'app'}", "--name", "team/app:1"))
        name = self.start("team/app:1")
        self.assertEqual(self.output(name), "1000\n/work/here\nhello\nimage\n")
        self.assertEqual(self.pod(name)["status"]["containerStatuses"][0]["imageID"],
                         f"docker.io/team/app@{image.digest}")
        self.assertIn(("Pulled", 'Container image "team/app:1" already present on machine'), self.events(name))
        changed = self.start("team/app:1", args=["echo $A; ls /etc; exit 7"], env=[{"name": "A", "value": "pod"}])
        self.assertEqual(self.output(changed), "pod\nhostname\nhosts\npasswd\nresolv.conf\n")
        self.assertEqual(self.state(changed)["terminated"]["exitCode"], 7)
        listed = json.loads(self.done(self.images("list", "-o", "json")))
        self.assertIn("docker.io/team/app:1", [one["name"] for one in listed["images"]])
        self.assertIn("python", listed["catalogue"])
        self.assertIn("the image in the store", self.done(self.images("explain", "team/app:1")))
        self.done(self.images("export", "team/app:1", self.scratch / "exported"))
        self.done(self.images("remove", "team/app:1"))
        self.done(self.images("import", self.scratch / "exported", "--name", "team/app:2"))
        self.assertEqual(self.output(self.start("team/app:2", args=["true"])), "")

    def test_layers_as_other_tools_write_them_run(self):
        """A layer comes twice, and a directory is removed and made anew in one layer."""
        empty = layout.tar({})
        lower = layout.tar({"d/old": b"", "e/old": b"", "file": b"lower\n"})
        upper = layout.tar({".wh.d": b"", "d/new": b"", "e/new": b"", ".wh.e": b"", "file": b"upper\n",
                            ".wh.file": b""})
        layout.busybox(empty, lower, empty, upper, empty).write(self.scratch / "layers")
        self.done(self.images("import", f"oci:{self.scratch / 'layers'}", "--name", "team/layers:1"))
        self.assertEqual(self.output(self.start("team/layers:1", command=["sh", "-c", "ls /d /e; cat /file"])),
                         "/d:\nnew\n\n/e:\nnew\nupper\n")

    def test_the_catalogue_serves_what_the_store_has_not(self):
        self.assertEqual(self.output(self.start("busybox:1.36", command=["sh", "-c", "echo catalogue"])), "catalogue\n")
        self.assertIn("this machine's own programs", self.done(self.images("explain", "busybox:1.36")))

    def test_names_that_nobody_knows_fail_in_words(self):
        name = self.start("127.0.0.1:9/nothing:1", command=["true"])
        message = self.failure(name, "ErrImagePull", "ImagePullBackOff")
        self.assertIn("registry 127.0.0.1:9 cannot be used", message)
        self.assertIn("swell images import", message)
        self.failure(name, "ImagePullBackOff")
        reasons = [reason for reason, _ in self.events(name)]
        self.assertLessEqual({"Pulling", "Failed", "BackOff"}, set(reasons))
        self.assertIn("capital letter", self.failure(self.start("Bad/Name"), "InvalidImageName"))
        self.failure(self.start("127.0.0.1:9/nothing:1", policy="Never"), "ErrImageNeverPull")

    def test_a_misspelt_name_of_the_catalogue_runs_nothing(self):
        message = self.failure(self.start("127.0.0.1:9/pytroch/pytorch:2", command=["true"]), "ErrImagePull",
                               "ImagePullBackOff")
        self.assertIn("did you mean pytorch/pytorch, which programs of this machine serve?", message)
        self.assertIn("Did you mean pytorch/pytorch?", self.done(self.images("explain", "pytroch/pytorch")))

    def test_images_for_other_machines_are_refused(self):
        layout.Image([layout.base_layer()], architecture="sparc").write(self.scratch / "other")
        refused = self.images("import", self.scratch / "other", "--name", "other")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("the image is for linux/sparc", refused.stderr)

    # ---- docker-registry ----

    def test_pulls_from_docker_registry_with_a_password(self):
        registry = self.docker("basic", user="alice:secret")
        image = layout.busybox(Cmd=["/bin/echo", "pulled"])
        name = registry.push(image, "team/app", "1", user="alice:secret")
        message = self.failure(self.start(name), "ErrImagePull", "ImagePullBackOff")
        self.assertIn("imagePullSecrets", message)
        config = self.scratch / "docker.json"
        config.write_text(json.dumps({"auths": {registry.address: {}}, "credsStore": "desktop"}))
        refused = self.images("pull", name, "--docker-config", config).stderr
        self.assertIn("log in with docker login, or name a file of credentials with --docker-config", refused)
        self.assertIn("leaves credentials to a helper (credsStore), which is not asked", refused)
        config.write_text(json.dumps({"auths": {registry.address: {
            "auth": base64.b64encode(b"alice:secret").decode()}}}))
        self.done(self.images("pull", name, "--docker-config", config))
        self.done(self.images("remove", name))
        self.secret("wrong", registry.address, "alice:guess")
        message = self.failure(self.start(name, spec={"imagePullSecrets": [{"name": "wrong"}]}), "ErrImagePull",
                               "ImagePullBackOff")
        self.assertIn('does not give', message)
        self.secret("right", registry.address, "alice:secret")
        pod = self.start(name, spec={"imagePullSecrets": [{"name": "right"}]})
        self.assertEqual(self.output(pod), "pulled\n")
        pulled = [message for reason, message in self.events(pod) if reason == "Pulled"][0]
        self.assertRegex(pulled, r'^Successfully pulled image ".*" in [0-9.]+m?s \([0-9.]+m?s including waiting\)\. '
                                 r'Image size: \d+ bytes\.$')
        # What one pod pulled is not another's for free.
        self.failure(self.start(name), "ErrImagePull", "ImagePullBackOff")
        again = self.start(name, spec={"imagePullSecrets": [{"name": "right"}]})
        self.assertEqual(self.output(again), "pulled\n")
        self.assertNotIn("Pulling", [reason for reason, _ in self.events(again)])

    def test_pulls_over_tls_with_an_authority_of_its_own(self):
        pair = certificate(self.scratch)
        registry = self.docker("tls", pair=pair)
        context = ssl.create_default_context(cafile=str(pair[0]))
        name = registry.push(layout.busybox(Cmd=["/bin/echo", "tls"]), "app", "1", context=context)
        self.assertIn("if it speaks TLS, an administrator must list it", self.images("pull", name).stderr)
        config = self.data / "registries.yaml"
        self.addCleanup(config.unlink)
        config.write_text(f"registries: [{{host: '{registry.address}', mirrors: ['https://127.0.0.1:9']}}]\n")
        message = self.failure(self.start(name), "ErrImagePull", "ImagePullBackOff")
        self.assertIn("its certificate is not trusted", message)
        self.assertIn("ca: FILE in registries.yaml", message)
        config.write_text(f"registries: [{{host: '{registry.address}', ca: {pair[0]}}}]\n")
        self.assertEqual(self.output(self.start(name)), "tls\n")

    # ---- a registry that misbehaves ----

    def test_a_cut_layer_is_continued_where_it_ended(self):
        registry = self.hostile(layout.tar({"noise": os.urandom(4 << 20)}), Cmd=["/bin/echo", "whole"])
        large = max(registry.image.layers, key=lambda layer: layer["size"])
        registry.cut_blobs.add(large["digest"])
        pod = self.start(f"{registry.address}/cut:1")
        self.assertEqual(self.output(pod), "whole\n")
        self.assertNotIn("Failed", [reason for reason, _ in self.events(pod)])
        self.assertEqual(len(registry.ranges), 1)
        self.assertGreater(int(registry.ranges[0].removeprefix("bytes=").rstrip("-")), 1 << 20)

    def test_wrong_bytes_are_refused_and_nothing_is_left(self):
        registry = self.hostile(layout.tar({"unique": os.urandom(1 << 16)}), Cmd=["/bin/true"])
        bad = registry.image.layers[1]["digest"]
        registry.wrong_blobs.add(bad)
        refused = self.images("pull", f"{registry.address}/wrong:1")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("came with other content", refused.stderr)
        store = self.data / "images"
        self.assertFalse((store / "blobs" / "sha256" / bad.partition(":")[2]).exists())
        self.assertFalse((store / "tmp" / (bad.partition(":")[2] + ".part")).exists())
        registry.wrong_blobs.clear()
        self.done(self.images("pull", f"{registry.address}/wrong:1"))

    def test_a_broken_image_is_no_bad_name(self):
        registry = self.hostile(layout.tar({"broken": os.urandom(1 << 10)}), Cmd=["/bin/true"])
        registry.wrong_blobs.add(registry.image.layers[1]["digest"])
        message = self.failure(self.start(f"{registry.address}/broken:1"), "ErrImagePull", "ImagePullBackOff")
        self.assertIn(f"image {registry.address}/broken:1 is broken at its registry: layer sha256:", message)
        registry.image.manifest = b'{"schemaVersion": 2}'
        message = self.failure(self.start(f"{registry.address}/empty:1"), "ErrImagePull", "ImagePullBackOff")
        self.assertIn("is broken at its registry: manifest: it has neither manifests nor a config", message)

    def test_errors_that_pass_are_waited_for(self):
        registry = self.hostile(Cmd=["/bin/echo", "patient"])
        registry.manifest_answers = [500, 429]
        self.assertEqual(self.output(self.start(f"{registry.address}/busy:1")), "patient\n")
        registry.manifest_answers = [404]
        refused = self.images("pull", f"{registry.address}/missing:1")
        self.assertIn("has no image", refused.stderr)
        self.assertIn("TROUBLE: answer 404", refused.stderr)

    def test_a_registry_that_names_a_time_is_left_alone_until_then(self):
        registry = self.hostile(Cmd=["/bin/true"])
        registry.retry_after = 120
        registry.manifest_answers = [429]
        refused = self.images("pull", f"{registry.address}/later:1")
        self.assertIn("asked too often; try again after 120 s", refused.stderr)
        self.assertEqual(registry.requests, 1)
        registry.retry_after = 1
        registry.manifest_answers = [503, 429]
        self.done(self.images("pull", f"{registry.address}/later:1"))

    def test_a_mirror_that_fails_is_left_for_the_registry(self):
        layers = [layout.tar({"noise": os.urandom(4 << 20)})]
        registry, mirror = (self.hostile(*layers, Cmd=["/bin/echo", "mirrored"]) for _ in range(2))
        config = self.data / "registries.yaml"
        self.addCleanup(config.unlink)
        config.write_text(f"registries: [{{host: '{registry.address}', insecure: true, "
                          f"mirrors: ['http://{mirror.address}']}}]\n")
        mirror.cut_blobs.add(max(mirror.image.layers, key=lambda layer: layer["size"])["digest"])
        mirror.range_answer = 503
        self.assertEqual(self.output(self.start(f"{registry.address}/mirrored:1")), "mirrored\n")
        self.assertGreater(int(registry.ranges[0].removeprefix("bytes=").rstrip("-")), 1 << 20)
        asked = mirror.requests
        mirror.manifest_answers = [503]
        self.done(self.images("pull", f"{registry.address}/busy:1"))
        self.assertEqual(mirror.requests, asked + 1)
        registry.indexed = mirror.indexed = True
        mirror.manifest_answers = [None, 404]
        self.done(self.images("pull", f"{registry.address}/indexed:1"))
        self.assertEqual(mirror.manifest_answers, [])

    def test_a_mirror_that_sends_other_bytes_is_left_for_the_registry(self):
        def manifest(mirror, _):
            mirror.indexed = mirror.wrong_manifest = True

        def layer(mirror, largest):
            mirror.wrong_blobs.add(largest)

        def half_a_layer(mirror, largest):
            mirror.wrong_blobs.add(largest)
            mirror.cut_blobs.add(largest)
            mirror.range_answer = 503

        config = self.data / "registries.yaml"
        self.addCleanup(config.unlink)
        for spoil in (manifest, layer, half_a_layer):
            with self.subTest(spoil.__name__):
                layers = [layout.tar({"noise": os.urandom(4 << 20)})]
                registry, mirror = (self.hostile(*layers, Cmd=["/bin/echo", "true bytes"]) for _ in range(2))
                registry.indexed = spoil is manifest
                config.write_text(f"registries: [{{host: '{registry.address}', insecure: true, "
                                  f"mirrors: ['http://{mirror.address}']}}]\n")
                spoil(mirror, max(mirror.image.layers, key=lambda layer: layer["size"])["digest"])
                self.assertEqual(self.output(self.start(f"{registry.address}/true:1")), "true bytes\n")
                self.assertGreater(mirror.requests, 1)

    def test_tokens_are_fetched_where_the_registry_says(self):
        registry = self.hostile(Cmd=["/bin/echo", "token"])
        registry.passwords_too = True
        registry.tokens = {"bob:word": "t0ken"}
        self.secret("token", registry.address, "bob:word")
        name = self.start(f"{registry.address}/token:1", spec={"imagePullSecrets": [{"name": "token"}]})
        self.assertEqual(self.output(name), "token\n")

    def test_a_registry_leads_nowhere_inside_the_machine(self):
        """A program's answer to the machine is not its answer to who names an image."""
        inner = self.hostile()
        inner.manifest_answers = [404] * 8
        for name, lead in (("redirect", f"http://{inner.address}/secret"), ("realm", f"http://{inner.address}/token"),
                           ("redirect", f"http://localhost:{inner.address.rpartition(':')[2]}/secret")):
            registry = self.hostile()
            setattr(registry, name, lead)
            refused = self.images("pull", f"{registry.address}/led:1")
            self.assertIn("leads to an address of this machine", refused.stderr)
            self.assertGreater(registry.requests, 0)
        self.assertEqual(inner.requests, 0)

    def test_only_errors_of_the_protocol_are_told(self):
        registry = self.hostile()
        registry.send, send = lambda handler, *_, **__: send(handler, 403, b"the text of a service"), registry.send
        refused = self.images("pull", f"{registry.address}/told:1")
        self.assertIn("HTTP status 403", refused.stderr)
        self.assertNotIn("the text of a service", refused.stderr)

    def test_a_pod_is_deleted_while_its_image_hangs(self):
        registry = self.hostile(layout.tar({"silent": os.urandom(1000)}), Cmd=["/bin/true"])
        registry.silent_blobs.add(registry.image.layers[1]["digest"])
        hanging = self.start(f"{registry.address}/silent:1")
        self.assertTrue(until(lambda: registry.requests >= 3, seconds=60))
        # Neither it nor its neighbours wait for the registry.
        self.assertEqual(self.output(self.start("busybox", command=["echo", "next"])), "next\n")
        self.done(self.kubectl("delete", "pod", hanging, "--wait=true", "--timeout=20s"))


if __name__ == "__main__":
    unittest.main()
