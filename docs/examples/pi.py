from mpi4py import MPI

world = MPI.COMM_WORLD
steps = 1_000_000
part = sum(4 / (1 + ((i + 0.5) / steps) ** 2) for i in range(world.rank, steps, world.size)) / steps
total = world.reduce(part)
if world.rank == 0:
    print("pi", round(total, 6), "by", world.size, "ranks")
