# Sourced by once.sh and fuzz.sh.

# content_key PATH...: 32 hexadecimal digits that the bytes and names of these files, and of all files in
# these folders, decide. Another checkout, in another folder, has the same.
content_key() {
  find "$@" -type f -print0 | sort -z | xargs -0 sha256sum | sed 's,  .*/,  ,' | sha256sum | cut -c1-32
}
