// Recognises columns of CSV whose cells hold several words, such as a|b|c.
#pragma once

#include "muster/data/profile/column_profile.h"

namespace muster::data {

// Makes a list of a column of text if its cells are lists of words: most of them have a separator,
// '|' or ';', between words without spaces around them, and the same words come again in other
// cells, in other places or among more or fewer words. Sets `separator`, and `words` with what is
// counted by them to the single words. Other columns stay as they are: text with a '|' in it, and
// codes of several parts such as m|18, whose parts have their places.
void FindListCells(ColumnProfile* column);

}  // namespace muster::data
