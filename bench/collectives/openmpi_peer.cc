// mpirun -np RANKS collectives_openmpi: MPI_Allreduce, by OpenMPI's own choice of algorithm.
#include <mpi.h>

#include "one_rank.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  bench::BindToCore(rank);
  bench::MeasureSizes(rank, ranks,
                      {.all_reduce =
                           [](float* values, size_t count) {
                             MPI_Allreduce(MPI_IN_PLACE, values, static_cast<int>(count), MPI_FLOAT,
                                           MPI_SUM, MPI_COMM_WORLD);
                           },
                       .barrier = [] { MPI_Barrier(MPI_COMM_WORLD); }});
  MPI_Finalize();
}
