// What a draft takes as it is, although it may mean something else.
#pragma once

#include <string>

#include "muster/data/profile/column_profile.h"

namespace muster::model {

// Returns what is to be said of a number that may stand for a missing value, such as -999 or -200
// in a column of other numbers from 0 on; "" if there is none.
std::string DescribeSentinel(const data::ColumnProfile& column);

// Returns what is to be said of the words of a label that differ in capitals or spaces only; "" if
// none do.
std::string DescribeSpellings(const data::ColumnProfile& label);

}  // namespace muster::model
