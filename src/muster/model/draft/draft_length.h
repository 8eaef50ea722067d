// How long a drafted model trains, and in which batches.
#pragma once

#include <cstdint>

#include "muster/model/draft/draft_column.h"
#include "muster/model/draft/draft_type.h"

namespace muster::model {

// Both for a table of so many rows.
int ChooseBatchSize(uint64_t rows, const DraftLabel& label);
int64_t ChooseEpochs(uint64_t rows, int batch_size, const DraftType& type, const DraftLabel& label);

}  // namespace muster::model
