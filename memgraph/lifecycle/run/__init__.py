"""What every run of the lifecycle needs: its time limit, its model usage, vectors made ahead of the lock."""
