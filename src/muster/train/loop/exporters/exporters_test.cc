#include "muster/train/loop/exporters/exporters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "muster/formats/event.h"
#include "muster/io/memory_file_system.h"

namespace muster::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ExporterTest : public testing::Test {
 protected:
  ExporterTest() : files_(io::NewMemoryFileSystem()) {}

  ExportContext Context() {
    return {*files_, clock_, "model", "model/eval", [this](const std::string& folder) {
              MUSTER_RETURN_IF_ERROR(files_->MakeFolders(folder));
              return io::WriteFileAtomically(*files_, folder + "/saved_model.pb", "a model");
            }};
  }
  // Writes the evaluation's events, as Estimator::Evaluate does, then asks the exporter.
  std::string Evaluate(Exporter& exporter, int64_t step, double loss, bool is_final = false) {
    formats::EventWriter events(*files_, "model/eval", clock_);
    EXPECT_TRUE(events.WriteScalars(step, {{"loss", static_cast<float>(loss)}}).ok());
    EXPECT_TRUE(events.Close().ok());
    const auto folder = exporter.Export(Context(), {{"loss", loss}}, is_final);
    EXPECT_TRUE(folder.ok()) << folder.status();
    return folder.value_or("failed");
  }
  std::vector<std::string> Exports(const std::string& name) {
    return files_->List("model/export/" + name).value_or(std::vector<std::string>());
  }

  std::unique_ptr<io::FileSystem> files_;
  FakeClock clock_;
};

TEST_F(ExporterTest, FinalExportsOnlyTheLastEvaluation) {
  const auto exporter = NewFinalExporter();
  EXPECT_EQ(Evaluate(*exporter, 1, 0.5), "");
  EXPECT_EQ(Evaluate(*exporter, 2, 0.5, true), "model/export/final/1700000000");
  EXPECT_THAT(Exports("final"), ElementsAre("1700000000"));
}

TEST_F(ExporterTest, LatestKeepsTheNewestWithDistinctSeconds) {
  const auto exporter = NewLatestExporter("latest", 2);
  ASSERT_TRUE(exporter.ok());
  // The clock stands still.
  for (int step = 1; step <= 4; ++step) Evaluate(**exporter, step, 0.5);
  EXPECT_THAT(Exports("latest"), ElementsAre("1700000002", "1700000003"));
  // Files that are not exports are left alone.
  ASSERT_TRUE(files_->MakeFolders("model/export/latest/mine").ok());
  ASSERT_TRUE(files_->MakeFolders("model/export/latest/17").ok());
  clock_.Advance(1000);
  Evaluate(**exporter, 5, 0.5);
  EXPECT_THAT(Exports("latest"), ElementsAre("17", "1700000003", "1700001000", "mine"));
}

TEST_F(ExporterTest, BestExportsOnlyStrictlySmallerLosses) {
  const auto exporter = NewBestExporter();
  ASSERT_TRUE(exporter.ok());
  ASSERT_TRUE((*exporter)->Begin(Context()).ok());
  EXPECT_NE(Evaluate(**exporter, 1, 0.5), "");
  EXPECT_EQ(Evaluate(**exporter, 2, 0.5), "");
  EXPECT_EQ(Evaluate(**exporter, 3, 0.6), "");
  EXPECT_NE(Evaluate(**exporter, 4, 0.4), "");
  EXPECT_EQ(Exports("best").size(), 2u);
}

TEST_F(ExporterTest, BestKnowsTheEarlierRun) {
  {
    const auto exporter = NewBestExporter();
    ASSERT_TRUE((*exporter)->Begin(Context()).ok());
    Evaluate(**exporter, 1, 0.1);
    Evaluate(**exporter, 2, 0.5);
  }
  const auto exporter = NewBestExporter();
  ASSERT_TRUE((*exporter)->Begin(Context()).ok());
  EXPECT_EQ(Evaluate(**exporter, 3, 0.3), "");
  // 0.1 is not smaller than itself read back as a float.
  EXPECT_EQ(Evaluate(**exporter, 4, 0.1), "");
  EXPECT_NE(Evaluate(**exporter, 5, 0.05), "");
}

TEST_F(ExporterTest, BestAlwaysExportsIfThereIsNoExport) {
  formats::EventWriter events(*files_, "model/eval", clock_);
  ASSERT_TRUE(events.WriteScalars(1, {{"loss", 0.01f}}).ok());
  ASSERT_TRUE(events.Close().ok());
  const auto exporter = NewBestExporter();
  ASSERT_TRUE((*exporter)->Begin(Context()).ok());
  EXPECT_NE(Evaluate(**exporter, 2, 0.5), "");
}

TEST_F(ExporterTest, BestByAnotherMetricOrByAFunction) {
  const auto by_auc = NewBestExporter({.name = "auc", .metric = "auc", .higher_is_better = true});
  const auto export_at = [&](Exporter& exporter, Metrics metrics) {
    return exporter.Export(Context(), metrics, false).value() != "";
  };
  EXPECT_TRUE(export_at(**by_auc, {{"auc", 0.7}}));
  EXPECT_FALSE(export_at(**by_auc, {{"auc", 0.7}}));
  EXPECT_TRUE(export_at(**by_auc, {{"auc", 0.8}}));
  const auto missing = (*by_auc)->Export(Context(), {{"aux", 1}}, false);
  EXPECT_TRUE(absl::IsInvalidArgument(missing.status()));
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("no metric 'auc' (did you mean"));

  BestExporterOptions options{.name = "mine"};
  options.better = [](const Metrics& best, const Metrics& current) {
    return current.at("a") + current.at("b") > best.at("a") + best.at("b");
  };
  const auto by_function = NewBestExporter(options);
  EXPECT_TRUE(export_at(**by_function, {{"a", 1}, {"b", 1}}));
  EXPECT_FALSE(export_at(**by_function, {{"a", 2}, {"b", 0}}));
  EXPECT_TRUE(export_at(**by_function, {{"a", 2}, {"b", 1}}));
}

TEST_F(ExporterTest, AFiniteLossIsBetterThanNan) {
  const auto exporter = NewBestExporter();
  EXPECT_NE(Evaluate(**exporter, 1, std::nan("")), "");
  EXPECT_NE(Evaluate(**exporter, 2, 0.5), "");
  EXPECT_EQ(Evaluate(**exporter, 3, std::nan("")), "");
}

TEST_F(ExporterTest, AFailedExportIsNotTheBest) {
  const auto exporter = NewBestExporter();
  ExportContext broken = Context();
  broken.export_model = [](const std::string&) { return absl::ResourceExhaustedError("full"); };
  const auto failed = (*exporter)->Export(broken, {{"loss", 0.1}}, false);
  EXPECT_THAT(std::string(failed.status().message()), HasSubstr("exporter 'best': full"));
  EXPECT_NE(Evaluate(**exporter, 2, 0.2), "");
}

TEST_F(ExporterTest, RefusesNamesAndNumbers) {
  EXPECT_THAT(std::string(NewLatestExporter("latest", -1).status().message()),
              HasSubstr("exports_to_keep, if provided, must be a positive number"));
  EXPECT_THAT(std::string(NewBestExporter({.exports_to_keep = -1}).status().message()),
              HasSubstr("exports_to_keep, if provided, must be a positive number"));
  const auto named = [](const std::string& name) {
    return std::shared_ptr<Exporter>(NewFinalExporter(name));
  };
  EXPECT_TRUE(ValidateExporters({named("a"), named("b")}).ok());
  EXPECT_THAT(std::string(ValidateExporters({named("a"), named("")}).message()),
              HasSubstr("cannot have an empty name; all exporter names: a, "));
  EXPECT_THAT(std::string(ValidateExporters({named("a"), named("a")}).message()),
              HasSubstr("must have unique names, 'a' appears twice"));
  EXPECT_THAT(std::string(ValidateExporters({named("a/b")}).message()), HasSubstr("without '/'"));
}

// Checks every exporter in the table.
TEST_F(ExporterTest, EachExporterIsMadeByItsName) {
  for (const std::string name : {"final", "latest", "best"}) {
    EXPECT_THAT(DescribeExporters(), HasSubstr(name));
    const auto plain = ParseExporter(name, 5);
    ASSERT_TRUE(plain.ok()) << plain.status();
    EXPECT_EQ(plain->exporter->name(), name);
    EXPECT_FALSE(plain->by);
    EXPECT_EQ(ParseExporter("mine=" + name, 5)->exporter->name(), "mine");
    EXPECT_THAT(std::string(ParseExporter("=" + name, 5).status().message()),
                HasSubstr("its name is empty"));
  }
  const auto by_auc = ParseExporter("best:auc:higher", 5);
  ASSERT_TRUE(by_auc.ok()) << by_auc.status();
  EXPECT_EQ(by_auc->by->metric, "auc");
  EXPECT_TRUE(by_auc->by->higher_is_better);
  const auto message = [](const std::string& text) {
    return std::string(ParseExporter(text, 5).status().message());
  };
  EXPECT_EQ(message("lastest"),
            "--exporter 'lastest': unknown exporter 'lastest' (did you mean 'latest'?)");
  EXPECT_EQ(message("latest:auc"), "--exporter 'latest:auc': only 'best' has options");
  for (const char* const wrong : {"best:auc", "best::higher", "best:auc:up", "best:a:b:lower"}) {
    EXPECT_THAT(message(wrong), HasSubstr("write best, best:METRIC:higher or best:METRIC:lower"));
  }
}

}  // namespace
}  // namespace muster::train
