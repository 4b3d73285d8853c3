"""What a job does while somebody else's system is away: it waits longer each time, and one of all asks."""
