# Decides whether the CUDA backend is built, and with what: sets SWITCHYARD_CUDA_ENABLED and, with it, the language CUDA.
set(SWITCHYARD_CUDA_ENABLED OFF)
if(NOT SWITCHYARD_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "SWITCHYARD_CUDA is \"${SWITCHYARD_CUDA}\"; use AUTO, ON or OFF")
endif()
if(SWITCHYARD_CUDA_HOST AND NOT SWITCHYARD_CUDA STREQUAL "OFF")
  message(FATAL_ERROR "SWITCHYARD_CUDA_HOST replaces the CUDA toolkit; configure with -DSWITCHYARD_CUDA=OFF")
endif()
if(SWITCHYARD_TEST_DEVICE AND NOT SWITCHYARD_CUDA STREQUAL "ON")
  message(FATAL_ERROR "SWITCHYARD_TEST_DEVICE needs the CUDA backend; configure with -DSWITCHYARD_CUDA=ON")
endif()

if(NOT SWITCHYARD_CUDA STREQUAL "OFF")
  # The toolkit's usual place, for shells whose PATH does not have it.
  find_program(SWITCHYARD_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(SWITCHYARD_NVCC)
    # Real code for Ampere and Hopper, and PTX for what comes after them.
    set(CMAKE_CUDA_ARCHITECTURES "80-real;90-real;90-virtual")
    set(CMAKE_CUDA_COMPILER ${SWITCHYARD_NVCC})
    enable_language(CUDA)
    # For projects that require CMake 3.25, that version marks CUDA::nvToolsExt as deprecated, and fails where CUDA 13
    # has none any more.
    set(required_version ${CMAKE_MINIMUM_REQUIRED_VERSION})
    set(CMAKE_MINIMUM_REQUIRED_VERSION 3.24)
    find_package(CUDAToolkit REQUIRED)
    set(CMAKE_MINIMUM_REQUIRED_VERSION ${required_version})
    set(SWITCHYARD_CUDA_ENABLED ON)
  elseif(SWITCHYARD_CUDA STREQUAL "ON")
    message(FATAL_ERROR "SWITCHYARD_CUDA=ON, but there is no nvcc in PATH; install the CUDA toolkit (12.0 or newer) or "
      "configure with -DSWITCHYARD_CUDA=OFF")
  endif()
endif()
message(STATUS "CUDA backend: ${SWITCHYARD_CUDA_ENABLED}")
