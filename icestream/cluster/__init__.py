"""The control plane: connectors, their configs and states, in one worker."""
