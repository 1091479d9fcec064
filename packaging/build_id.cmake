# Writes OUTPUT, a header with WF__BUILD: the version, and a hash of all headers in SOURCE. Two libraries that share internal
# structures fit only if these are the same. cmake -DSOURCE=... -DVERSION=... -DOUTPUT=... -P build_id.cmake
file(GLOB_RECURSE headers ${SOURCE}/src/*.h ${SOURCE}/include/*.h)
list(SORT headers)
foreach(header ${headers})
  file(SHA256 ${header} hash)
  string(APPEND all ${hash})
endforeach()
string(SHA256 id "${all}")
string(SUBSTRING ${id} 0 12 id)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define WF__BUILD \"${VERSION}+${id}\"\n")
