# SPDX-License-Identifier: Apache-2.0
"""A Ray cluster in one machine that obeys commands, one line of JSON each, on standard input; each is
answered by a line on standard output. Runs in Ray's environment.

  ray_program.py HTTP_PORT GRPC_PORT NODES
"""
import json
import os
import sys
import traceback

import ray
from ray import serve
from ray.cluster_utils import Cluster

import ingot.ray

CPUS = 8  # logical ones of a node, twice as many where it is alone: nothing here is about speed


class Program:
    def __init__(self, http, grpc, nodes):
        self.cluster = Cluster(initialize_head=True, head_node_args={
            "num_cpus": CPUS if nodes else 2 * CPUS, "num_gpus": 0, "include_dashboard": False,
            "resources": {"head": 1}})
        self.workers = [self.cluster.add_node(num_cpus=CPUS, num_gpus=0, resources={"worker": 1})
                        for _ in range(nodes)]
        ray.init(address=self.cluster.address, namespace="serve", log_to_driver=False)
        serve.start(http_options={"host": "127.0.0.1", "port": http, "location": "HeadOnly"},
                    grpc_options={"port": grpc, "grpc_servicer_functions": ["ingot.ray.add_inference_service"]})

    def run(self, arguments):
        serve.run(ingot.ray.app(ingot.ray.Arguments(**arguments)), name="default")

    def refuse(self, arguments):
        """The text with which an application is refused."""
        try:
            ingot.ray.app(ingot.ray.Arguments(**arguments))
        except ValueError as error:
            return str(error)
        return None

    def graph(self, engine, options):
        """A graph of a user's own: an ingress that calls an engine's handle."""
        @serve.deployment
        class Digit:
            def __init__(self, model):
                self.model = model

            async def __call__(self, request):
                import numpy as np
                pixels = np.array(await request.json(), np.float32)
                scores = await self.model.remote(pixels)
                return scores.argmax(1).tolist()

        serve.run(Digit.bind(ingot.ray.deployment(engine, **options).bind()), name="graph", route_prefix="/digit")

    def delete(self, name):
        serve.delete(name)

    def status(self, name):
        """{deployment: {state: number of replicas}}"""
        found = serve.status().applications[name]
        return {key: {str(getattr(state, "value", state)): count for state, count in one.replica_states.items()}
                for key, one in found.deployments.items()}

    def remove_node(self):
        self.cluster.remove_node(self.workers.pop(), allow_graceful=False)

    def kill_controller(self):
        ray.kill(ray.get_actor("SERVE_CONTROLLER_ACTOR", namespace="serve"), no_restart=False)


def main(http, grpc, nodes, kind=Program):
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever else is printed
    program = kind(int(http), int(grpc), int(nodes))
    answers.write('{"answer": "started"}\n')
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        try:
            answer = {"answer": getattr(program, name)(*arguments)}
        except Exception:  # the test shows it
            answer = {"error": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
