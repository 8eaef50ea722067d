"""Gives TensorFlow the paths hdfs://, webhdfs:// and swebhdfs://, by Muster's client and without Java.

Muster puts this folder in front of PYTHONPATH for the programs that it starts; MUSTER_TENSORFLOW_HDFS
`off` keeps it from doing so. Python runs this file at its start, and then, from here, the sitecustomize
that it would have run without this folder.

When the program imports TensorFlow, the library beside this file is registered with it
(tf.experimental.register_filesystem_plugin). Old releases have an HDFS of their own, which asks the
system's loader for libhdfs.so: they find the one beside this file, which is loaded here, unless
HADOOP_HDFS_HOME names a Hadoop that has one.
"""

import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
PLUGIN = os.path.join(FOLDER, "libmuster-tensorflow-hdfs.so")
LIBHDFS = os.path.join(FOLDER, "libhdfs.so")


def say(error):
    sys.stderr.write("muster: %s: TensorFlow gets no hdfs:// from Muster\n" % error)


def load_libhdfs():
    """For a TensorFlow that has an HDFS of its own, for whose scheme no plugin can be registered."""
    import ctypes

    ctypes.CDLL(LIBHDFS)


def knows_plugins(spec):
    """Whether it is TensorFlow 2.4 or newer, told before it is imported."""
    folder = os.path.dirname(spec.origin or "")
    try:
        with open(os.path.join(folder, "python", "framework", "load_library.py")) as file:
            return "register_filesystem_plugin" in file.read()
    except OSError:
        return False


def register(tensorflow):
    register_plugin = tensorflow.experimental.register_filesystem_plugin
    try:
        register_plugin(PLUGIN)
    except tensorflow.errors.AlreadyExistsError:  # hdfs:// is; the other schemes are registered
        load_libhdfs()

    def register_filesystem_plugin(plugin_location):
        """As TensorFlow's own, but that a known scheme is no error: tensorflow_io brings an hdfs://
        among others, and TensorFlow keeps the first."""
        try:
            return register_plugin(plugin_location)
        except tensorflow.errors.AlreadyExistsError:
            return None

    tensorflow.experimental.register_filesystem_plugin = register_filesystem_plugin


class Finder:
    """Finds `tensorflow` where the other finders find it, and registers once it is imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "tensorflow":
            return None
        for finder in sys.meta_path:
            find_spec = getattr(finder, "find_spec", None)
            spec = None if finder is Finder or find_spec is None else find_spec(name, path, target)
            if spec is not None:
                Finder.watch(spec)
                return spec
        return None

    @staticmethod
    def watch(spec):
        execute = getattr(spec.loader, "exec_module", None)
        if execute is None:  # a namespace package: no TensorFlow
            return

        def exec_module(module):
            new = knows_plugins(spec)
            try:
                if not new:  # its HDFS looks for the library while it is imported
                    load_libhdfs()
            except OSError as error:
                say(error)
            execute(module)
            try:
                if new:
                    register(module)
            except Exception as error:  # the program may need no HDFS
                say(error)

        spec.loader.exec_module = exec_module


def run_hidden_sitecustomize():
    import importlib.machinery
    import importlib.util

    folders = [folder for folder in sys.path if os.path.abspath(folder or ".") != FOLDER]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", folders)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if sys.version_info >= (3, 5):
    if os.environ.get("MUSTER_TENSORFLOW_HDFS") != "off":
        sys.meta_path.insert(0, Finder)
    run_hidden_sitecustomize()
