"""What every run of the lifecycle needs: what has changed since the last one, the runner that commits, its time limit, its model usage."""
