// Part of engine_conformance.h: what an engine refuses, and that it works as before after an error.
#pragma once

#include <climits>
#include <limits>
#include <string>
#include <vector>

#include "muster/engine/engine_conformance.h"
#include "muster/engine/engine_conformance_step.h"

namespace muster::engine {

TEST_P(EngineConformance, RefusesWeightsThatDoNotFit) {
  const auto expect_refused = [&](std::span<const VariableView> views, const std::string& what) {
    RecordingSink sink(*engine_);
    Forward out;
    ExpectInvalid(engine_->Step(views, batch_, {}, sink).status(), what);
    ExpectInvalid(engine_->Step(views, GetRows(batch_, 0, 0), {.denominator = 1}, sink).status(),
                  StrCat(what, ", no rows"));
    EXPECT_THAT(sink.order, testing::IsEmpty()) << what;
    ExpectInvalid(engine_->Predict(views, batch_, &out), what);
    ExpectInvalid(engine_->Freeze(views), what);
  };
  expect_refused({}, "no weights");
  expect_refused(weights_->views().first(weights_->views().size() - 1), "one too few");
  for (size_t i = 0; i < weights_->views().size(); ++i) {
    const std::string& name = engine_->variables()[i].name;
    std::vector<VariableView> views = weights_->mutable_views();
    const VariableView fits = views[i];
    views[i].data = nullptr;
    expect_refused(views, StrCat(name, " without memory"));
    views[i] = {fits.data, fits.rows, fits.cols + 1};
    expect_refused(views, StrCat(name, " with a column more"));
    views[i] = {fits.data, -fits.rows, -fits.cols};
    expect_refused(views, StrCat(name, " with lengths below 0"));
    views[i] = {fits.data, fits.rows + 1, fits.cols};
    if (!IsTable(i)) expect_refused(views, StrCat(name, " with a row more"));
  }
}

TEST_P(EngineConformance, RefusesBatchesThatDoNotFit) {
  ExpectRefused({}, "nothing");
  ExpectRefused(GetRows(batch_, 0, 0), "no rows");
  for (const int rows : {-1, INT_MIN, batch_.rows + 1, batch_.rows - 1, INT_MAX}) {
    features::FeatureBatch batch = batch_;
    batch.rows = rows;
    ExpectRefused(batch, StrCat("columns of another length than ", rows, " rows"));
  }
  features::FeatureBatch batch;
  batch.rows = batch_.rows;
  ExpectRefused(batch, "no columns");
  batch = batch_;
  batch.labels.clear();
  if (!batch.raw.empty()) batch.raw.pop_back();  // the last label or weight
  ExpectRefused(batch, "no labels", /*by_predict=*/false);
  for (size_t i = 0; i < batch_.raw.size(); ++i) {
    batch = batch_;
    batch.raw[i].shape.push_back(1);
    ExpectRefused(batch, StrCat("column ", i, " of another shape"));
    batch = batch_;
    const bool is_float = batch_.raw[i].type == formats::DataType::kFloat;
    batch.raw[i].type = is_float ? formats::DataType::kInt32 : formats::DataType::kFloat;
    ExpectRefused(batch, StrCat("column ", i, " of another type"));
  }
}

TEST_P(EngineConformance, RefusesIdsThatDoNotFit) {
  const features::FeatureBatch found = WithIds();
  for (const TableUse& use : engine_->table_uses()) {
    const std::string of = StrCat(" in list ", use.id_list);
    features::FeatureBatch batch = found;
    std::vector<int32_t>& ids = batch.id_lists[Index(use.id_list)].ids;
    const auto rows = static_cast<int32_t>(engine_->variables()[Index(use.variable)].shape[0]);
    for (const int32_t bad : {rows, -2, INT_MIN, INT_MAX}) {
      for (int32_t* const at : {&ids.front(), &ids.back()}) {
        const int32_t good = *at;
        *at = bad;
        ExpectRefused(batch, StrCat("id ", bad, of));
        *at = good;
      }
    }
    ids.pop_back();
    ExpectRefused(batch, StrCat("an id too few", of));
    batch = found;
    batch.id_lists.resize(Index(use.id_list));
    // If the batch has no id lists at all, the engine finds them.
    if (use.id_list > 0 || !engine_->finds_ids()) ExpectRefused(batch, StrCat("no such list", of));
    // A block of a table bounds its ids as the table does.
    std::vector<VariableView> views = weights_->mutable_views();
    views[Index(use.variable)].rows = 0;
    RecordingSink sink(*engine_);
    ExpectInvalid(engine_->Step(views, found, {}, sink).status(), StrCat("an empty block", of));
    EXPECT_THAT(sink.order, testing::IsEmpty());
  }
}

// A loss that is no number is not refused: the trainer sees it in the result.
TEST_P(EngineConformance, GivesNoGradientsOfALossThatIsNoNumber) {
  for (size_t i = 0; i < engine_->variables().size(); ++i) {
    const VariableSpec& spec = engine_->variables()[i];
    if (spec.kind == VariableKind::kState) continue;
    const std::vector<float> good = weights_->at(i);
    weights_->at(i).assign(good.size(), std::numeric_limits<float>::quiet_NaN());
    for (const double denominator : {0.0, 100.0}) {
      CheckingSink sink(*engine_, weights_->views(), false);  // expects finite numbers
      const auto result =
          engine_->Step(weights_->views(), batch_, {.denominator = denominator}, sink);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_TRUE(GetParam().hides_nan || !std::isfinite(result->loss)) << spec.name << " is NaN";
      EXPECT_EQ(sink.order.empty(), !std::isfinite(result->loss)) << spec.name;
    }
    weights_->at(i) = good;
  }
}

}  // namespace muster::engine
