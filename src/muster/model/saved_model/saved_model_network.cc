#include "muster/model/saved_model/saved_model_network.h"

#include <vector>

#include "muster/model/model.h"

namespace muster::model {
namespace {

using features::ColumnKind;
using features::ColumnSpec;
using features::Combiner;
using formats::BoolAttr;
using formats::DataType;
using formats::GraphAttr;
using formats::IntAttr;
using formats::TypeAttr;

constexpr float kBatchNormEpsilon = 1e-3F;  // engine::native::BatchNormOptions

class NetworkWriter {
 public:
  NetworkWriter(const ModelSpec& spec, SavedModelFeatures* features, SavedModelVariables* variables,
                const std::string& scope, formats::GraphDefBuilder* graph)
      : spec_(spec),
        logits_(spec.head.logits_dimension()),
        features_(*features),
        variables_(*variables),
        scope_(scope),
        graph_(*graph) {}

  // The bias in as many rows as `fed` has.
  std::string Baseline(const formats::SignatureTensor& fed) {
    const std::string name = StrCat(scope_, "baseline");
    const auto shape_type = TypeAttr("Index", DataType::kInt32);
    const std::vector<int32_t> zero = {0}, one = {1};
    const std::vector<int32_t> units = {static_cast<int32_t>(logits_)};
    const std::string shape =
        graph_.Node(StrCat(name, "/Shape"), "Shape", {fed.tensor},
                    {TypeAttr("T", fed.type), TypeAttr("out_type", DataType::kInt32)});
    const std::string rows = graph_.Node(StrCat(name, "/rows"), "Slice",
                                         {shape, graph_.Int32s(StrCat(name, "/begin"), zero, {1}),
                                          graph_.Int32s(StrCat(name, "/size"), one, {1})},
                                         {TypeAttr("T", DataType::kInt32), shape_type});
    const std::string dims = graph_.Node(
        StrCat(name, "/dims"), "ConcatV2",
        {rows, graph_.Int32s(StrCat(name, "/units"), units, {1}),
         graph_.Int32(StrCat(name, "/axis"), 0)},
        {TypeAttr("T", DataType::kInt32), TypeAttr("Tidx", DataType::kInt32), IntAttr("N", 2)});
    return graph_.Node(StrCat(name, "/logits"), "BroadcastTo",
                       {variables_.Value("baseline/bias", {logits_}), dims},
                       {TypeAttr("T", DataType::kFloat), TypeAttr("Tidx", DataType::kInt32)});
  }

  std::string Linear() {
    const std::string scope = StrCat(scope_, "linear/linear_model");
    std::vector<std::string> parts;
    for (const std::string& name : spec_.linear->columns) {
      const ColumnSpec& column = *spec_.features.Find(name);
      const std::string variable = StrCat("linear/linear_model/", name, "/weights");
      const std::string part = StrCat(scope, "/", name, "/weighted_sum");
      if (column.is_categorical()) {
        int64_t rows = 0;
        const GraphIds ids = features_.IdsInto(column, variable, part, &rows);
        const std::string table = variables_.Handle(variable, {rows, logits_});
        parts.push_back(Combined(part, Gathered(part, table, ids), ids, Combiner::kSum));
      } else {
        const std::string weights =
            variables_.Value(variable, {spec_.features.Width(column), logits_});
        parts.push_back(Floats(part, "MatMul", {features_.Dense(column), weights}));
      }
    }
    const std::string sum = graph_.Node(
        StrCat(scope, "/weighted_sum_no_bias"), "AddN", parts,
        {TypeAttr("T", DataType::kFloat), IntAttr("N", static_cast<int64_t>(parts.size()))});
    return Floats(StrCat(scope, "/weighted_sum"), "BiasAdd",
                  {sum, variables_.Value("linear/linear_model/bias_weights", {logits_})});
  }

  std::string Dnn() {
    const DnnSpec& dnn = *spec_.dnn;
    int64_t width = 0;
    std::string net = InputLayer(&width);
    if (dnn.input_batch_norm) net = BatchNorm("dnn/input_batchnorm", net, width);
    for (size_t i = 0; i < dnn.hidden_units.size(); ++i) {
      const std::string name = StrCat("dnn/hiddenlayer_", i);
      net = Activated(StrCat(scope_, name), Dense(name, net, width, dnn.hidden_units[i]));
      width = dnn.hidden_units[i];
      if (dnn.batch_norm) net = BatchNorm(StrCat(name, "/batchnorm_", i), net, width);
    }
    return Dense("dnn/logits", net, width, logits_);
  }

  std::string Add(const std::string& a, const std::string& b) {
    return Floats(StrCat(scope_, "add"), "AddV2", {a, b});
  }

 private:
  // A node whose one type attribute is T = float.
  std::string Floats(const std::string& name, std::string_view op,
                     std::initializer_list<std::string> inputs) {
    return graph_.Node(name, op, inputs, {TypeAttr("T", DataType::kFloat)});
  }

  std::string InputLayer(int64_t* width) {
    const std::string scope = "dnn/input_from_feature_columns/input_layer";
    std::vector<std::string> parts;
    for (const std::string& name : spec_.dnn->columns) {
      const ColumnSpec& column = *spec_.features.Find(name);
      *width += spec_.features.Width(column);
      if (column.kind != ColumnKind::kEmbedding) {
        parts.push_back(features_.Dense(column));
        continue;
      }
      parts.push_back(Embedding(StrCat(scope_, scope, "/", name, "/embedding_lookup"), column));
    }
    if (parts.size() == 1) return parts[0];
    const int64_t count = static_cast<int64_t>(parts.size());
    const std::string name = StrCat(scope_, scope, "/concat");
    parts.push_back(graph_.Int32(StrCat(name, "/axis"), 1));
    return graph_.Node(
        name, "ConcatV2", parts,
        {TypeAttr("T", DataType::kFloat), TypeAttr("Tidx", DataType::kInt32), IntAttr("N", count)});
  }

  std::string Embedding(const std::string& name, const ColumnSpec& column) {
    const ColumnSpec& categorical = *spec_.features.Find(column.input);
    const std::string variable = EmbeddingVariable(column);
    int64_t all_rows = 0;
    const GraphIds ids = features_.IdsInto(categorical, variable, name, &all_rows);
    const std::string table = variables_.Handle(variable, {all_rows, column.dimension});
    const Rows rows = Gathered(name, table, ids, column.max_norm);
    if (column.pooling == features::Pooling::kNone) {
      return Combined(name, rows, ids, column.combiner);
    }
    const std::string steps = ids.present.empty() ? rows.has_id : ids.present;
    return PooledSteps(StrCat(name, "/pooled"), rows.values, steps, column.pooling, &graph_);
  }

  // Rows of a table by ids, [batch, columns] or of lists [batch, n, columns]; zeros where there is
  // no id. `mask` is `has_id` with a last dimension of 1.
  struct Rows {
    std::string values, has_id, mask;
  };

  Rows Gathered(const std::string& name, const std::string& table, const GraphIds& ids,
                double max_norm = 0) {
    const auto ints = [&](std::string_view op, int64_t operand) {
      const std::string node = StrCat(name, "/", op);
      return graph_.Node(node, op, {ids.tensor, graph_.Int64(StrCat(node, "/y"), operand)},
                         {TypeAttr("T", DataType::kInt64)});
    };
    std::string values =
        graph_.Node(StrCat(name, "/rows"), "ResourceGather", {table, ints("Maximum", 0)},
                    {TypeAttr("dtype", DataType::kFloat), TypeAttr("Tindices", DataType::kInt64)});
    if (max_norm > 0) values = Clipped(StrCat(name, "/clip_by_norm"), values, max_norm);
    Rows rows;
    rows.has_id = ints("GreaterEqual", 0);
    rows.mask = Expanded(StrCat(name, "/has_id"), rows.has_id, DataType::kBool);
    rows.values = Floats(StrCat(name, "/masked"), "SelectV2",
                         {rows.mask, values, graph_.Float(StrCat(name, "/zero"), 0)});
    return rows;
  }

  // A last dimension of 1.
  std::string Expanded(const std::string& name, const std::string& tensor, DataType type) {
    return graph_.Node(name, "ExpandDims", {tensor, graph_.Int32(StrCat(name, "/dim"), -1)},
                       {TypeAttr("T", type), TypeAttr("Tdim", DataType::kInt32)});
  }

  // tf.clip_by_norm over the last dimension.
  std::string Clipped(const std::string& name, const std::string& rows, double max_norm) {
    const std::string limit = graph_.Float(StrCat(name, "/max_norm"), static_cast<float>(max_norm));
    const std::string squares =
        graph_.Node(StrCat(name, "/Sum"), "Sum",
                    {Floats(StrCat(name, "/Square"), "Square", {rows}),
                     graph_.Int32(StrCat(name, "/axis"), -1)},
                    {TypeAttr("T", DataType::kFloat), TypeAttr("Tidx", DataType::kInt32),
                     BoolAttr("keep_dims", true)});
    const std::string norm = Floats(StrCat(name, "/Sqrt"), "Sqrt", {squares});
    return Floats(StrCat(name, "/truediv"), "RealDiv",
                  {Floats(StrCat(name, "/mul"), "Mul", {rows, limit}),
                   Floats(StrCat(name, "/Maximum"), "Maximum", {norm, limit})});
  }

  // Rows combined over the ids of a row, zeros for a row without ids:
  // tf.nn.safe_embedding_lookup_sparse. [batch, columns]
  std::string Combined(const std::string& name, const Rows& rows, const GraphIds& ids,
                       Combiner combiner) {
    if (!ids.list && ids.weights.empty()) return rows.values;
    std::string values = rows.values;
    std::string factor;  // of each id, 0 where there is none; [batch, 1] or [batch, n, 1]
    const std::string zero = graph_.Float(StrCat(name, "/no_weight"), 0);
    if (ids.weights.empty()) {
      factor = graph_.Node(StrCat(name, "/ones"), "Cast", {rows.mask},
                           {TypeAttr("SrcT", DataType::kBool), TypeAttr("DstT", DataType::kFloat)});
    } else {
      factor = Floats(
          StrCat(name, "/weights"), "SelectV2",
          {rows.mask, Expanded(StrCat(name, "/all_weights"), ids.weights, DataType::kFloat), zero});
      if (combiner != Combiner::kSum) {
        factor = Floats(StrCat(name, "/positive"), "Maximum", {factor, zero});
      }
      values = Floats(StrCat(name, "/weighted"), "Mul", {values, factor});
    }
    const auto sum = [&](std::string_view part, const std::string& of) {
      return ids.list ? SumOfList(StrCat(name, "/", part), of) : of;
    };
    const std::string total = sum("Sum", values);
    if (combiner == Combiner::kSum) return total;
    if (combiner == Combiner::kSqrtN) factor = Floats(StrCat(name, "/Square"), "Square", {factor});
    std::string divisor = sum("count", factor);
    if (combiner == Combiner::kSqrtN) divisor = Floats(StrCat(name, "/Sqrt"), "Sqrt", {divisor});
    return Floats(StrCat(name, "/DivNoNan"), "DivNoNan", {total, divisor});
  }

  // [batch, n, columns] to [batch, columns].
  std::string SumOfList(const std::string& name, const std::string& values) {
    return graph_.Node(name, "Sum", {values, graph_.Int32(StrCat(name, "/axis"), 1)},
                       {TypeAttr("T", DataType::kFloat), TypeAttr("Tidx", DataType::kInt32)});
  }

  std::string Dense(const std::string& name, const std::string& input, int64_t width,
                    int64_t units) {
    const std::string product =
        Floats(StrCat(scope_, name, "/MatMul"), "MatMul",
               {input, variables_.Value(StrCat(name, "/kernel"), {width, units})});
    return Floats(StrCat(scope_, name, "/BiasAdd"), "BiasAdd",
                  {product, variables_.Value(StrCat(name, "/bias"), {units})});
  }

  std::string Activated(const std::string& scope, const std::string& input) {
    const std::string& activation = spec_.dnn->activation;
    if (activation == "relu") return Floats(StrCat(scope, "/Relu"), "Relu", {input});
    if (activation == "tanh") return Floats(StrCat(scope, "/Tanh"), "Tanh", {input});
    if (activation == "sigmoid") return Floats(StrCat(scope, "/Sigmoid"), "Sigmoid", {input});
    return input;
  }

  // x * s + (beta - mean * s), s = gamma / sqrt(variance + epsilon), as tf.nn.batch_normalization.
  std::string BatchNorm(const std::string& name, const std::string& input, int64_t width) {
    const std::string scope = StrCat(scope_, name, "/batchnorm");
    const auto variable = [&](std::string_view part) {
      return variables_.Value(StrCat(name, "/", part), {width});
    };
    const std::string epsilon = graph_.Float(StrCat(scope, "/add/y"), kBatchNormEpsilon);
    const std::string variance =
        Floats(StrCat(scope, "/add"), "AddV2", {variable("moving_variance"), epsilon});
    const std::string scale =
        Floats(StrCat(scope, "/mul"), "Mul",
               {Floats(StrCat(scope, "/Rsqrt"), "Rsqrt", {variance}), variable("gamma")});
    const std::string shift = Floats(StrCat(scope, "/sub"), "Sub",
                                     {variable("beta"), Floats(StrCat(scope, "/mul_2"), "Mul",
                                                               {variable("moving_mean"), scale})});
    return Floats(StrCat(scope, "/add_1"), "AddV2",
                  {Floats(StrCat(scope, "/mul_1"), "Mul", {input, scale}), shift});
  }

  const ModelSpec& spec_;
  const int64_t logits_;  // a row
  SavedModelFeatures& features_;
  SavedModelVariables& variables_;
  const std::string& scope_;
  formats::GraphDefBuilder& graph_;
};

}  // namespace

std::string AddNetwork(const ModelSpec& spec, const std::vector<formats::SignatureTensor>& fed,
                       SavedModelFeatures* features, SavedModelVariables* variables,
                       const std::string& scope, formats::GraphDefBuilder* graph) {
  NetworkWriter network(spec, features, variables, scope, graph);
  if (spec.baseline) return network.Baseline(fed[0]);
  if (!spec.dnn) return network.Linear();
  const std::string logits = network.Dnn();
  return spec.linear ? network.Add(logits, network.Linear()) : logits;
}

}  // namespace muster::model
