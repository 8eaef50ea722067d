"""A real API server of Kubernetes on this machine, and pods without a cluster."""
