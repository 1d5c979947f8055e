"""What every command needs: options, opening a store, input and output."""
