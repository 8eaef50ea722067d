#include "muster/formats/foreign_formats.h"

#include <string>

#include "absl/strings/str_replace.h"

#include "muster/base/strings.h"

namespace muster::formats {
namespace {

struct Magic {
  std::string_view bytes;
  size_t offset;
  bool may_be_text;  // the rest of the file may be text
  ForeignFormat format;
};

using std::string_view_literals::operator""sv;

constexpr std::string_view kSparkAvro =
    "spark.read.format('avro').load('FILE').write.option('header', True).csv('OUT')";
constexpr std::string_view kSparkSequence =
    "sc.sequenceFile('FILE').values().saveAsTextFile('OUT')";

constexpr ForeignFormat kPicture = {"a picture",
                                    "a TFRecord file whose records hold the bytes of a picture and "
                                    "its label, for an exported Keras "
                                    "model (docs/keras.md)"};
constexpr ForeignFormat kPickle = {
    "a pickle of Python",
    "python3 -c \"import pandas; pandas.read_pickle('FILE').to_csv('OUT.csv', index=False)\""};

constexpr Magic kMagics[] = {
    {"PAR1"sv,
     0,
     false,
     {"Apache Parquet", "muster records from-parquet FILE --spec model.yaml --out OUT",
      "init, train, evaluate, predict and records stats read by a name that ends in .parquet"}},
    {"PARE"sv,
     0,
     false,
     {"encrypted Apache Parquet",
      "spark.read.parquet('FILE').write.option('header', True).csv('OUT') with its keys"}},
    {"ORC"sv,
     0,
     false,
     {"Apache ORC",
      "python3 -c \"import pandas; pandas.read_orc('FILE').to_csv('OUT.csv', index=False)\""}},
    {"Obj\x01"sv, 0, false, {"Apache Avro", kSparkAvro}},
    {"ARROW1"sv,
     0,
     false,
     {"Apache Arrow (Feather)",
      "python3 -c \"import pandas; pandas.read_feather('FILE').to_csv('OUT.csv', index=False)\""}},
    {"FEA1"sv,
     0,
     false,
     {"Feather (version 1)",
      "python3 -c \"import pandas; pandas.read_feather('FILE').to_csv('OUT.csv', index=False)\""}},
    {"\xff\xff\xff\xff"sv,
     0,
     false,
     {"an Apache Arrow stream",
      "python3 -c \"import pyarrow as a; "
      "a.ipc.open_stream('FILE').read_pandas().to_csv('OUT.csv', index=False)\""}},
    {"PK\x03\x04"sv,
     0,
     false,
     {"a ZIP archive, perhaps an Excel workbook",
      "of a workbook by python3 -c \"import pandas; "
      "pandas.read_excel('FILE').to_csv('OUT.csv', index=False)\", of an archive by unzip FILE"}},
    {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"sv,
     0,
     false,
     {"an Excel workbook (of before 2007)",
      "python3 -c \"import pandas; pandas.read_excel('FILE').to_csv('OUT.csv', index=False)\""}},
    {"SEQ\x06"sv, 0, false, {"a Hadoop sequence file", kSparkSequence}},
    {"\x89HDF\r\n\x1a\n"sv,
     0,
     false,
     {"HDF5",
      "python3 -c \"import pandas; pandas.read_hdf('FILE').to_csv('OUT.csv', index=False)\""}},
    {"\x93NUMPY"sv,
     0,
     false,
     {"a NumPy array",
      "python3 -c \"import numpy; numpy.savetxt('OUT.csv', numpy.load('FILE'), delimiter=',')\" "
      "(and --no-header)"}},
    {"SQLite format 3\0"sv,
     0,
     false,
     {"an SQLite database", "sqlite3 -header -csv FILE 'select * from TABLE' > OUT.csv"}},
    {"BZh"sv, 0, false, {"bzip2", "bunzip2 -k FILE, or bzcat FILE | gzip > OUT.gz"}},
    {"\xfd"
     "7zXZ"sv,
     0,
     false,
     {"xz", "unxz -k FILE, or xzcat FILE | gzip > OUT.gz"}},
    {"\x04\x22\x4d\x18"sv, 0, false, {"LZ4", "lz4 -d FILE OUT"}},
    {"\xff\x06\x00\x00sNaPpY"sv, 0, false, {"Snappy", "snzip -d FILE"}},
    {"ustar"sv, 257, true, {"a tar archive", "tar -xf FILE"}},
    {"\xff\xfe"sv, 0, true, {"text in UTF-16", "iconv -f UTF-16 -t UTF-8 FILE > OUT"}},
    {"\xfe\xff"sv, 0, true, {"text in UTF-16", "iconv -f UTF-16 -t UTF-8 FILE > OUT"}},
    {"\x89PNG\r\n\x1a\n"sv, 0, false, kPicture},
    {"\xff\xd8\xff"sv, 0, false, kPicture},
    {"GIF8"sv, 0, false, kPicture},
    {"\x80\x02"sv, 0, false, kPickle},
    {"\x80\x03"sv, 0, false, kPickle},
    {"\x80\x04"sv, 0, false, kPickle},
    {"\x80\x05"sv, 0, false, kPickle},
    {"%PDF-"sv, 0, true, {"a PDF document", "the program that has made it"}},
    {"<!DOCTYPE"sv, 0, true, {"a web page", "downloading the file itself"}},
    {"<html"sv, 0, true, {"a web page", "downloading the file itself"}},
};

}  // namespace

const ForeignFormat* FindForeignFormat(std::string_view bytes, bool is_text) {
  for (const Magic& magic : kMagics) {
    if (is_text && !magic.may_be_text) continue;
    if (bytes.size() < magic.offset) continue;
    if (bytes.substr(magic.offset).starts_with(magic.bytes)) return &magic.format;
  }
  return nullptr;
}

std::string DescribeForeign(const ForeignFormat& format, std::string_view path) {
  const size_t slash = path.rfind('/');
  std::string_view out = slash == std::string_view::npos ? path : path.substr(slash + 1);
  out = out.substr(0, out.find('.', 1));
  const std::string way =
      absl::StrReplaceAll(ToAbsl(format.way), {{"FILE", ToAbsl(path)}, {"OUT", ToAbsl(out)}});
  if (!format.readers.empty()) {
    return StrCat("this is ", format.name, ", which muster ", format.readers,
                  "; convert it for other verbs: ", way);
  }
  return StrCat("this is ", format.name,
                ", which muster does not read; convert it to CSV, JSON lines or TFRecord, for "
                "example: ",
                way);
}

}  // namespace muster::formats
