package muster.yarn;

import org.apache.hadoop.yarn.api.records.Container;

/** The command line of a slot's agent, once its container is known. */
interface CommandOf {
  String of(Container container);
}
